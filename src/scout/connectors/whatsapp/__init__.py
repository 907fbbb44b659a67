"""WhatsApp: messages, reply buttons and files over the Cloud API of Meta, with a webhook."""
