"""What a training job is: frozen values, validated when they are created. No module of this package has effects."""
