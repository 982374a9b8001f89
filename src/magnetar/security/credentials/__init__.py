"""What our clients present to a broker: credentials by method, with secrets that are named and never shown.

Reading order: ``secret`` (a reference to a secret, and what it takes to read it), ``supplier`` (a program that prints
one), ``method`` (what a connection asks of any credentials), ``token``, ``basic``, ``certificate`` (methods whose
credentials are there already), ``oauth2`` (a token from an issuer), ``key_file`` (Pulsar's file of a client id and
secret), ``exchange`` (requests that end in time), ``issuer`` (those to it), ``plugin`` (Pulsar's authPlugin and
authParams), ``client_conf`` (Pulsar's client.conf); beside them ``bucket_login`` (whether anything says how to log in
at a bucket of a cloud).
"""
