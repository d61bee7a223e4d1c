from readings import mean


def test_mean_of_the_station():
    assert mean("stations/harbour-2019.csv") == 11.5
