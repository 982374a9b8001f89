"""Who is speaking, and over what: TLS and authentication, for the broker and for everything of ours that connects.

Reading order: ``identity`` (what authentication finds out about a peer), ``asker_words`` (how our own clients name
what they give), ``exposed_files`` (secrets that everybody may read), ``tokens`` (signed ones, and their keys),
``openid`` (keys that issuers publish), ``authentication`` (of peers, by the providers that the settings name),
``credentials`` (what our own clients present, with secrets that are named and never shown), ``tls`` (what the bytes
of both are wrapped in).
"""
