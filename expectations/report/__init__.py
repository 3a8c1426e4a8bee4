"""What people see of the quality of a stream: one page that opens offline, and the Data Docs."""
