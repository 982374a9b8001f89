"""What all compiled loops share.

Reading order: ``compiled`` (how a function becomes machine code, and where that is kept), ``protobuf_wire`` (protobuf's
wire format over arrays of bytes), ``memory`` (loads and stores by address, for kernels made of many small functions).
"""
