"""The review sheet: what is shown to people, how it leaves, and how their decisions come back."""
