"""What a training job is: frozen values that are checked when they are made. No module of this package has effects."""
