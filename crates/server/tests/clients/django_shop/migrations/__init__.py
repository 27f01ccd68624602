"""The first one is what `makemigrations` would write; the second one changes what is there."""
