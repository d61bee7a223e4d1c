from dataclasses import dataclass


@dataclass
class Plant:
    name: str
    height: float = 0.0

    def __post_init__(self):
        if self.height < 0:
            raise ValueError("height must not be negative")
