module example.org/rota

go 1.19
