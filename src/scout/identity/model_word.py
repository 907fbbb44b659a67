"""Short names of models: which parts of a model's name are enough to select it."""

from scout.identity.address import fold

VENDORS = frozenset({"claude", "gpt", "openai", "anthropic", "gemini", "google"})


def list_model_words(model: str) -> frozenset[str]:
    """Return every text that selects this model, so that an index finds it without a scan.

    The whole name; the rest after leading vendor words; each alphabetic word that is not a vendor; and
    the tail that starts at such a word. Vendor words alone select nothing.
    """
    words = fold(model).split("-")
    asked = {"-".join(words)}
    leading = True
    for index, word in enumerate(words):
        tail = words[index:]
        named = word.isalpha() and word not in VENDORS
        if named:
            asked.add(word)
        if named or (leading and not VENDORS.issuperset(tail)):
            asked.add("-".join(tail))
        leading = leading and word in VENDORS
    return frozenset(asked)


def matches_model(asked: str, model: str) -> bool:
    """Whether the word selects this model (`5-5` and `gpt-5-5`, `sonnet` and `claude-sonnet-4-6`)."""
    return asked in list_model_words(model)
