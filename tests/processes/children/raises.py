print("before", flush=True)
raise ValueError("the loss is not a number")
