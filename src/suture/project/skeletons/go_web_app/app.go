package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

const maxBodyBytes = 1_000_000

// statusError is an answer other than success, with a message for the client.
type statusError struct {
	status  int
	message string
}

func (e statusError) Error() string { return e.message }

// validator is a resource that refuses some values.
type validator interface{ Validate() error }

// resource is a struct of resources.go, and what its routes need to know of it.
type resource struct {
	kind   reflect.Type
	path   string
	fields []field
}

type field struct {
	name       string
	kind       reflect.Kind
	isRequired bool
}

var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// findResources returns the resources in the order of their definition.
func findResources() []resource {
	found := []resource{}
	for _, value := range resources {
		kind := reflect.TypeOf(value)
		one := resource{kind: kind, path: plural(strings.ToLower(wordStart.ReplaceAllString(kind.Name(), "${1}_$2")))}
		for at := 0; at < kind.NumField(); at++ {
			tag := kind.Field(at).Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			if name == "" {
				name = kind.Field(at).Name
			}
			if name != "id" && name != "-" {
				isRequired := !strings.Contains(options, "omitempty")
				one.fields = append(one.fields, field{name, kind.Field(at).Type.Kind(), isRequired})
			}
		}
		found = append(found, one)
	}
	return found
}

func plural(word string) string {
	for _, ending := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(word, ending) {
			return word + "es"
		}
	}
	if stem := strings.TrimSuffix(word, "y"); stem != word && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return stem + "ies"
	}
	return word + "s"
}

// read returns the values of an entry from the JSON of a request, of which previous has the others.
func (r resource) read(body []byte, previous Entry) (Entry, error) {
	given := Entry{}
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return nil, statusError{http.StatusBadRequest, "the request must hold a JSON object"}
	}
	for name, value := range previous {
		if _, ok := given[name]; !ok {
			given[name] = value
		}
	}
	delete(given, "id")
	for _, one := range r.fields {
		if value, ok := given[one.name]; one.isRequired && (!ok || value == nil) {
			return nil, statusError{http.StatusBadRequest, fmt.Sprintf("the field %q is missing", one.name)}
		}
	}
	content, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	entry := reflect.New(r.kind)
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(entry.Interface()); err != nil {
		return nil, statusError{http.StatusBadRequest, strings.TrimPrefix(err.Error(), "json: ")}
	}
	if checked, ok := entry.Interface().(validator); ok {
		if err := checked.Validate(); err != nil {
			return nil, statusError{http.StatusBadRequest, err.Error()}
		}
	}
	return r.complete(entry.Elem().Interface())
}

// complete returns the values of an entry with those that are empty.
func (r resource) complete(entry any) (Entry, error) {
	content, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	values := Entry{}
	if err := json.Unmarshal(content, &values); err != nil {
		return nil, err
	}
	empty := map[reflect.Kind]any{reflect.String: "", reflect.Bool: false, reflect.Int: 0.0, reflect.Float64: 0.0}
	for _, one := range r.fields {
		if _, ok := values[one.name]; !ok {
			values[one.name] = empty[one.kind]
		}
	}
	return values, nil
}

// newApp returns the server's handler.
func newApp(store *Store) http.Handler {
	found := findResources()
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		status, content, err := answer(store, found, request)
		if err != nil {
			status, content = http.StatusInternalServerError, Entry{"error": err.Error()}
			var known statusError
			if errors.As(err, &known) {
				status = known.status
			}
		}
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(status)
		if status != http.StatusNoContent {
			_ = json.NewEncoder(writer).Encode(content) // the client may be gone
		}
	})
}

// answer returns the status and the content of the answer to a request.
func answer(store *Store, found []resource, request *http.Request) (int, any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, request.Body, maxBodyBytes))
	if err != nil {
		return 0, nil, statusError{http.StatusRequestEntityTooLarge, "the request is too large"}
	}
	// A client that sends its request slowly must not stop the others. Saved entries never change: new ones replace them.
	store.mutex.Lock()
	defer store.mutex.Unlock()
	path, id, hasID := strings.Cut(strings.Trim(request.URL.Path, "/"), "/")
	if path == "" {
		paths := []string{}
		for _, one := range found {
			paths = append(paths, "/"+one.path)
		}
		return http.StatusOK, Entry{"resources": paths}, nil
	}
	for _, one := range found {
		if one.path == path && hasID {
			return one.answerEntry(store, request.Method, id, body)
		} else if one.path == path {
			return one.answerAll(store, request, body)
		}
	}
	return 0, nil, statusError{http.StatusNotFound, "there is no " + request.URL.Path}
}

// answerAll answers a request for all entries of a resource.
func (r resource) answerAll(store *Store, request *http.Request, body []byte) (int, any, error) {
	switch request.Method {
	case http.MethodGet:
		entries := []Entry{}
		for _, entry := range store.list(r.path) {
			if r.matches(entry, request) {
				entries = append(entries, entry)
			}
		}
		return http.StatusOK, entries, nil
	case http.MethodPost:
		values, err := r.read(body, nil)
		if err != nil {
			return 0, nil, err
		}
		entry, err := store.save(r.path, values, 0)
		return http.StatusCreated, entry, err
	}
	return 0, nil, statusError{http.StatusMethodNotAllowed, request.Method + " is not allowed here"}
}

// matches returns whether an entry has the values that the query of a request asks for.
func (r resource) matches(entry Entry, request *http.Request) bool {
	query := request.URL.Query()
	for _, one := range r.fields {
		if query.Has(one.name) && fmt.Sprint(entry[one.name]) != query.Get(one.name) {
			return false
		}
	}
	return true
}

// answerEntry answers a request for one entry.
func (r resource) answerEntry(store *Store, method, id string, body []byte) (int, any, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	_, entry := store.get(r.path, number)
	if err != nil || entry == nil {
		return 0, nil, statusError{http.StatusNotFound, "there is no entry " + id}
	}
	switch method {
	case http.MethodGet:
		return http.StatusOK, entry, nil
	case http.MethodDelete:
		return http.StatusNoContent, nil, store.remove(r.path, number)
	case http.MethodPut:
		entry = nil
	case http.MethodPatch:
	default:
		return 0, nil, statusError{http.StatusMethodNotAllowed, method + " is not allowed here"}
	}
	values, err := r.read(body, entry)
	if err != nil {
		return 0, nil, err
	}
	changed, err := store.save(r.path, values, number)
	return http.StatusOK, changed, err
}
