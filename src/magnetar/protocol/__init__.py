"""Bytes to typed commands and back, for both roles; pure (no socket, clock or log). May import: model.

Reading order: frames (sizes, magic, checksum), commands (what can be said), codec (commands and protobuf), decoder
(bytes in, commands out), pieces (long lists of ids), varints, receipts and deliveries (the two frames a broker writes
most, made by hand), entries and compression (what is inside SEND and MESSAGE), server and client (who may say what
when).
"""
