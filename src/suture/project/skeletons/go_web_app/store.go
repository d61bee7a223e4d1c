package main

import (
	"encoding/json"
	"os"
	"sync"
)

// Entry holds the values of an entry by their JSON names, and its id.
type Entry = map[string]any

type table struct {
	LastID  int64   `json:"lastId"`
	Entries []Entry `json:"entries"`
}

// Store keeps the entries of all resources in one JSON file.
type Store struct {
	mutex  sync.Mutex
	path   string
	tables map[string]*table
}

func openStore(path string) (*Store, error) {
	store := &Store{path: path, tables: map[string]*table{}}
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return store, nil
	}
	if err != nil {
		return nil, err
	}
	return store, json.Unmarshal(content, &store.tables)
}

func (s *Store) find(name string) *table {
	if s.tables[name] == nil {
		s.tables[name] = &table{Entries: []Entry{}}
	}
	return s.tables[name]
}

// list returns all entries of a resource, the oldest first.
func (s *Store) list(name string) []Entry {
	return append([]Entry{}, s.find(name).Entries...)
}

// get returns the position of an entry and the entry; nil if there is none.
func (s *Store) get(name string, id int64) (int, Entry) {
	for at, entry := range s.find(name).Entries {
		if number, ok := entry["id"].(float64); ok && int64(number) == id {
			return at, entry
		}
	}
	return -1, nil
}

// save adds an entry, or replaces the one with this id, and returns it. A new entry has the id 0.
func (s *Store) save(name string, values Entry, id int64) (Entry, error) {
	table := s.find(name)
	if id == 0 {
		table.LastID++
		id = table.LastID
	}
	values["id"] = float64(id) // as JSON has it
	if at, _ := s.get(name, id); at >= 0 {
		table.Entries[at] = values
	} else {
		table.Entries = append(table.Entries, values)
	}
	return values, s.write()
}

// remove deletes an entry.
func (s *Store) remove(name string, id int64) error {
	table := s.find(name)
	if at, _ := s.get(name, id); at >= 0 {
		table.Entries = append(table.Entries[:at:at], table.Entries[at+1:]...)
	}
	return s.write()
}

func (s *Store) write() error {
	content, err := json.MarshalIndent(s.tables, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".part", content, 0o644); err != nil {
		return err
	}
	return os.Rename(s.path+".part", s.path)
}
