"""Who is speaking, and over what: TLS and authentication, for the broker and for everything of ours that connects.

Read ``identity`` first: what authentication finds out about a peer.
"""
