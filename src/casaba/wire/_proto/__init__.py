"""Messages made from proto/ by tools/gen_proto.py."""
