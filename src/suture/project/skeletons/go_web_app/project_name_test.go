package main

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var samples = map[reflect.Kind]any{
	reflect.String: "sample", reflect.Int: 1.0, reflect.Float64: 1.5, reflect.Bool: true,
}

// sampler is a resource for which the samples are not allowed, and that has a valid value of its own.
type sampler interface{ Example() any }

func openTestStore(t *testing.T, path string) *Store {
	t.Helper()
	store, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// send returns the status of the answer to a request, and its content.
func send(t *testing.T, store *Store, method, path string, values any) (int, any) {
	t.Helper()
	body, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	newApp(store).ServeHTTP(recorder, httptest.NewRequest(method, path, strings.NewReader(string(body))))
	var content any
	if recorder.Body.Len() > 0 {
		if err := json.Unmarshal(recorder.Body.Bytes(), &content); err != nil {
			t.Fatalf("%s %s is not answered with JSON: %v", method, path, err)
		}
	}
	return recorder.Code, content
}

// makeSample returns valid values of a resource.
func makeSample(t *testing.T, one resource) Entry {
	t.Helper()
	values := Entry{}
	for _, field := range one.fields {
		values[field.name] = samples[field.kind]
	}
	if own, ok := reflect.New(one.kind).Interface().(sampler); ok {
		given, err := one.complete(own.Example())
		if err != nil {
			t.Fatal(err)
		}
		values = given
	}
	return values
}

// create creates an entry and returns it.
func create(t *testing.T, store *Store, one resource) any {
	t.Helper()
	values := makeSample(t, one)
	status, content := send(t, store, "POST", "/"+one.path, values)
	if status != 201 {
		t.Fatalf("POST /%s with %v is answered with %d: %v If these values are not allowed, give %s a method "+
			"`Example() any` that returns one that is.", one.path, values, status, content, one.kind.Name())
	}
	return content
}

func TestEachResourceHasFieldsOfKnownTypes(t *testing.T) {
	found := findResources()
	if len(found) == 0 {
		t.Fatal("resources.go lists no resource.")
	}
	for _, one := range found {
		if len(one.fields) == 0 {
			t.Errorf("The resource %s has no fields.", one.kind.Name())
		}
		for _, field := range one.fields {
			if samples[field.kind] == nil {
				t.Errorf("The type of %q in %s is not string, int, float64 or bool.", field.name, one.kind.Name())
			}
		}
	}
}

func TestACreatedEntryCanBeReadAndOutlivesTheServer(t *testing.T) {
	for _, one := range findResources() {
		path := filepath.Join(t.TempDir(), "test.json")
		store := openTestStore(t, path)
		entry := create(t, store, one)
		expected := makeSample(t, one)
		expected["id"] = 1.0
		if !reflect.DeepEqual(entry, any(expected)) {
			t.Errorf("POST /%s is answered with %v, want %v", one.path, entry, expected)
		}
		for _, source := range []*Store{store, openTestStore(t, path)} {
			if _, got := send(t, source, "GET", "/"+one.path+"/1", nil); !reflect.DeepEqual(got, entry) {
				t.Errorf("GET /%s/1 is answered with %v, want %v", one.path, got, entry)
			}
			if _, got := send(t, source, "GET", "/"+one.path, nil); !reflect.DeepEqual(got, []any{entry}) {
				t.Errorf("GET /%s is answered with %v, want %v", one.path, got, []any{entry})
			}
		}
	}
}

func TestAnEntryCanBeChangedAndDeleted(t *testing.T) {
	for _, one := range findResources() {
		store := openTestStore(t, filepath.Join(t.TempDir(), "test.json"))
		entry := create(t, store, one)
		for _, method := range []string{"PUT", "PATCH"} {
			if _, got := send(t, store, method, "/"+one.path+"/1", makeSample(t, one)); !reflect.DeepEqual(got, entry) {
				t.Errorf("%s /%s/1 is answered with %v, want %v", method, one.path, got, entry)
			}
		}
		if status, _ := send(t, store, "DELETE", "/"+one.path+"/1", nil); status != 204 {
			t.Errorf("DELETE /%s/1 is answered with %d, want 204", one.path, status)
		}
		if status, _ := send(t, store, "GET", "/"+one.path+"/1", nil); status != 404 {
			t.Errorf("GET of a deleted entry is answered with %d, want 404", status)
		}
	}
}

func TestAnEntryOfOnlyTheRequiredFieldsCanBeChanged(t *testing.T) {
	for _, one := range findResources() {
		store := openTestStore(t, filepath.Join(t.TempDir(), "test.json"))
		sample, values := makeSample(t, one), Entry{}
		for _, field := range one.fields {
			if field.isRequired {
				values[field.name] = sample[field.name]
			}
		}
		status, entry := send(t, store, "POST", "/"+one.path, values)
		if status != 201 { // Validate may refuse an entry without the others
			continue
		}
		if _, got := send(t, store, "PATCH", "/"+one.path+"/1", values); !reflect.DeepEqual(got, entry) {
			t.Errorf("PATCH /%s/1 is answered with %v, want %v", one.path, got, entry)
		}
	}
}

func TestWrongRequestsAreRefused(t *testing.T) {
	for _, one := range findResources() {
		store := openTestStore(t, filepath.Join(t.TempDir(), "test.json"))
		requests := []any{"no object"}
		for _, field := range one.fields {
			missing, wrong := makeSample(t, one), makeSample(t, one)
			delete(missing, field.name)
			wrong[field.name] = Entry{"not": "a plain value"}
			requests = append(requests, wrong)
			if field.isRequired {
				requests = append(requests, missing)
			}
		}
		for _, values := range requests {
			if status, _ := send(t, store, "POST", "/"+one.path, values); status != 400 {
				t.Errorf("POST /%s with %v is answered with %d, want 400", one.path, values, status)
			}
		}
		for _, method := range []string{"GET", "DELETE"} {
			if status, _ := send(t, store, method, "/"+one.path+"/999", nil); status != 404 {
				t.Errorf("%s /%s/999 is answered with %d, want 404", method, one.path, status)
			}
		}
	}
}
