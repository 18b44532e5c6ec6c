# A version script with the names of an exports file up to version `newest`; `at` is the field of the
# version and `name` that of the symbol.
BEGIN { FS = "[(), ]+"; print "{ global:" }
/^(EXPORT|TWIN)/ && $at + 0 <= newest { print $name ";" }
END { print "local: *; };" }
