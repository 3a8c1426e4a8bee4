"""What `transforms.reorder` judges rows with: narrow arrays by key, ties, duplicates, full buffers.

Belongs here: the parts of a judgement of one arrival partition. The judgement as a whole is
`transforms.reorder`, the watermark `transforms.watermark`.
"""
