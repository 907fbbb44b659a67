"""The web page: server-rendered views of Scout, kept live by the event stream."""
