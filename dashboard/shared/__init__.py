"""What the pages share: data, charts, filters, words."""
