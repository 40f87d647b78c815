"""The words of the product: types, units and policy. Pure; imports nothing of ours."""
