# the modules of this package are imported one by one
