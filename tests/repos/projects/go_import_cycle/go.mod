module example.org/haul

go 1.19
