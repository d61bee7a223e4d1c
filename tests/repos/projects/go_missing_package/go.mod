module example.org/ferry

go 1.19

require example.org/tides v1.2.0
