"""The parts of the ordered map, and the count of inverted pairs.

Belongs here: how order is restored and measured. The map that others use is
`transforms.resequence`, the audit `transforms.order_audit`.
"""
