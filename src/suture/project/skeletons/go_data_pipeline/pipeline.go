package main

func process(rows []Row) (any, error) {
	return nil, nil
}
