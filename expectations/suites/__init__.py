"""Great Expectations: a suite for each stage, judging evidence."""
