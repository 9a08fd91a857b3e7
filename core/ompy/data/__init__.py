"""What every layer handles: requests, convertors, datatypes, errors."""
