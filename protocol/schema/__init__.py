"""The types of the wire and of the session files as JSON Schema 2020-12 and as TypeScript."""
