// Package calls answers calls of one function in JSON-plus (call_driver.py). It runs inside the sandbox, does not know the
// expected results and decides nothing: whatever a candidate does here, it can only answer wrongly.
package calls

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"sort"
	"strconv"
	"unsafe"
)

// Nested values, size of an answer, length of a stack trace. Chosen by judgement; not measured.
const (
	maxDepth       = 60
	maxAnswerBytes = 4 << 20
	maxStackChars  = 4000
)

type message map[string]interface{}

// The conversation with Suture. The candidate's own stdin and stdout lead elsewhere.
var (
	input     = os.NewFile(3, "in")
	output    = os.NewFile(4, "out")
	errorType = reflect.TypeOf((*error)(nil)).Elem()
)

// Serve answers calls until the input ends.
func Serve(function interface{}) {
	called := reflect.ValueOf(function)
	if called.Kind() != reflect.Func {
		readMessage()
		writeMessage(message{"absent": true})
		os.Exit(0)
	}
	readMessage()
	writeMessage(message{"ready": true})
	for {
		writeMessage(answer(called, readMessage()))
	}
}

// readMessage reads a message: its length in four bytes, and JSON. The program ends if Suture is gone.
func readMessage() message {
	var head [4]byte
	if _, err := io.ReadFull(input, head[:]); err != nil {
		os.Exit(0)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(input, body); err != nil {
		os.Exit(0)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var heard message
	if decoder.Decode(&heard) != nil {
		os.Exit(0)
	}
	return heard
}

func writeMessage(told message) {
	body, err := json.Marshal(told)
	if err != nil || len(body) > maxAnswerBytes {
		body = []byte(`{"died":"the answer is too large"}`)
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	if _, err := output.Write(append(frame, body...)); err != nil {
		os.Exit(0)
	}
}

// answer calls the function, and returns its value, what it raised, or why the arguments do not fit it.
func answer(called reflect.Value, asked message) (told message) {
	kind := called.Type()
	given, _ := asked["args"].([]interface{})
	least := kind.NumIn()
	if kind.IsVariadic() {
		least--
	}
	if len(given) < least || (len(given) > least && !kind.IsVariadic()) {
		return message{"unfit": fmt.Sprintf("it takes %d arguments, and is called with %d", kind.NumIn(), len(given))}
	}
	args := make([]reflect.Value, len(given))
	for at, part := range given {
		var wanted reflect.Type
		if at < least {
			wanted = kind.In(at)
		} else {
			wanted = kind.In(least).Elem()
		}
		args[at] = reflect.New(wanted).Elem()
		if err := decode(part, args[at]); err != nil {
			return message{"unfit": fmt.Sprintf("argument %d: %s", at+1, err)}
		}
	}
	shown := encodeAll(args)
	defer func() {
		if fault := recover(); fault != nil {
			text := fmt.Sprint(fault)
			stack := string(debug.Stack())
			if len(stack) > maxStackChars {
				stack = stack[:maxStackChars]
			}
			told = message{"raised": list("error", "panic", text), "stack": stack}
		}
	}()
	results := encodeAll(called.Call(args))
	altered := []int{}
	for at, part := range encodeAll(args) {
		if !reflect.DeepEqual(part, shown[at]) {
			altered = append(altered, at)
		}
	}
	if len(results) == 1 {
		return message{"value": results[0], "altered": altered}
	}
	return message{"value": list("results", results), "altered": altered}
}

func encodeAll(values []reflect.Value) []interface{} {
	parts := []interface{}{}
	for _, value := range values {
		parts = append(parts, encode(value, 0))
	}
	return parts
}

func list(parts ...interface{}) []interface{} { return parts }

func foreign(kind reflect.Type) interface{} { return list("foreign", "a "+kind.String()) }

// decimal writes a float with an exponent, so that Python reads a float even if it is a whole number.
func decimal(value float64) interface{} {
	switch {
	case math.IsNaN(value):
		return list("number", "NaN")
	case math.IsInf(value, 1):
		return list("number", "Infinity")
	case math.IsInf(value, -1):
		return list("number", "-Infinity")
	}
	return json.RawMessage(strconv.FormatFloat(value, 'e', -1, 64))
}

// encode returns a value as JSON-plus.
func encode(value reflect.Value, depth int) interface{} {
	if depth > maxDepth {
		return list("foreign", "something too deep, or that holds itself")
	}
	kind := value.Type()
	nilable := value.Kind() == reflect.Interface || value.Kind() == reflect.Ptr ||
		value.Kind() == reflect.Slice || value.Kind() == reflect.Map
	if nilable && value.IsNil() {
		return nil
	}
	if kind.Implements(errorType) && value.CanInterface() {
		return list("error", kind.String(), value.Interface().(error).Error())
	}
	switch value.Kind() {
	case reflect.Bool:
		return value.Bool()
	case reflect.String:
		return value.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return value.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return value.Uint()
	case reflect.Float32:
		// Formatted like a literal of that size.
		exact, _ := strconv.ParseFloat(strconv.FormatFloat(value.Float(), 'g', -1, 32), 64)
		return decimal(exact)
	case reflect.Float64:
		return decimal(value.Float())
	case reflect.Interface, reflect.Ptr:
		return encode(value.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		parts := []interface{}{}
		for at := 0; at < value.Len(); at++ {
			parts = append(parts, encode(value.Index(at), depth+1))
		}
		return list("list", parts)
	case reflect.Map:
		pairs := []interface{}{}
		for _, key := range value.MapKeys() {
			pairs = append(pairs, list(encode(key, depth+1), encode(value.MapIndex(key), depth+1)))
		}
		// Go iterates over keys in random order.
		sort.Slice(pairs, func(a, b int) bool { return fmt.Sprint(pairs[a]) < fmt.Sprint(pairs[b]) })
		return list("map", pairs)
	case reflect.Struct:
		pairs := []interface{}{}
		for at := 0; at < value.NumField(); at++ {
			pairs = append(pairs, list(kind.Field(at).Name, encode(value.Field(at), depth+1)))
		}
		return list("object", pairs)
	}
	return foreign(kind)
}

// tagged returns the parts of a JSON-plus value with this tag.
func tagged(value interface{}, tag string) ([]interface{}, bool) {
	parts, ok := value.([]interface{})
	if !ok || len(parts) < 2 || parts[0] != tag {
		return nil, false
	}
	inner, ok := parts[1].([]interface{})
	return inner, ok
}

// decode sets a variable to a JSON-plus value, which gets its meaning from the type of the variable.
func decode(value interface{}, into reflect.Value) error {
	kind := into.Type()
	cannot := fmt.Errorf("a %s cannot be made of it", kind)
	switch into.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return fmt.Errorf("no example can give a %s", kind)
	case reflect.Interface:
		return decodeAny(value, into)
	}
	if value == nil {
		if into.Kind() == reflect.Ptr || into.Kind() == reflect.Slice || into.Kind() == reflect.Map {
			return nil
		}
		return cannot
	}
	switch into.Kind() {
	case reflect.Ptr:
		made := reflect.New(kind.Elem())
		into.Set(made)
		return decode(value, made.Elem())
	case reflect.Bool:
		truth, ok := value.(bool)
		if !ok {
			return cannot
		}
		into.SetBool(truth)
		return nil
	case reflect.String:
		text, ok := value.(string)
		if !ok {
			return cannot
		}
		into.SetString(text)
		return nil
	case reflect.Slice, reflect.Array:
		return decodeList(value, into, cannot)
	case reflect.Map:
		return decodeMap(value, into, cannot)
	case reflect.Struct:
		return decodeStruct(value, into, cannot)
	}
	return decodeNumber(value, into, cannot)
}

func decodeNumber(value interface{}, into reflect.Value, cannot error) error {
	if parts, ok := value.([]interface{}); ok && len(parts) == 2 && parts[0] == "number" {
		if into.Kind() != reflect.Float64 && into.Kind() != reflect.Float32 {
			return cannot
		}
		value = json.Number(fmt.Sprint(parts[1]))
	}
	number, ok := value.(json.Number)
	if !ok {
		return cannot
	}
	switch into.Kind() {
	case reflect.Float32, reflect.Float64:
		read, err := strconv.ParseFloat(number.String(), 64)
		if err != nil {
			return cannot
		}
		into.SetFloat(read)
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		read, err := strconv.ParseInt(number.String(), 10, 64)
		if err != nil || into.OverflowInt(read) {
			return cannot
		}
		into.SetInt(read)
		return nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		read, err := strconv.ParseUint(number.String(), 10, 64)
		if err != nil || into.OverflowUint(read) {
			return cannot
		}
		into.SetUint(read)
		return nil
	}
	return cannot
}

func decodeList(value interface{}, into reflect.Value, cannot error) error {
	parts, ok := tagged(value, "list")
	if !ok || (into.Kind() == reflect.Array && len(parts) != into.Len()) {
		return cannot
	}
	if into.Kind() == reflect.Slice {
		into.Set(reflect.MakeSlice(into.Type(), len(parts), len(parts)))
	}
	for at, part := range parts {
		if err := decode(part, into.Index(at)); err != nil {
			return err
		}
	}
	return nil
}

func decodeMap(value interface{}, into reflect.Value, cannot error) error {
	pairs, ok := tagged(value, "map")
	if !ok {
		pairs, ok = tagged(value, "object")
	}
	if !ok {
		if parts, empty := tagged(value, "list"); !empty || len(parts) > 0 {
			return cannot
		}
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, each := range pairs {
		pair := each.([]interface{})
		key, part := reflect.New(into.Type().Key()).Elem(), reflect.New(into.Type().Elem()).Elem()
		if err := decode(pair[0], key); err != nil {
			return err
		}
		if err := decode(pair[1], part); err != nil {
			return err
		}
		into.SetMapIndex(key, part)
	}
	return nil
}

// decodeStruct takes fields in their order or by their names. It sets unexported ones too, as the package itself can.
func decodeStruct(value interface{}, into reflect.Value, cannot error) error {
	set := func(field reflect.Value, part interface{}) error {
		return decode(part, reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
	}
	if parts, ok := tagged(value, "list"); ok {
		if len(parts) > 0 && len(parts) != into.NumField() {
			return cannot
		}
		for at, part := range parts {
			if err := set(into.Field(at), part); err != nil {
				return err
			}
		}
		return nil
	}
	pairs, ok := tagged(value, "object")
	if !ok {
		return cannot
	}
	for _, each := range pairs {
		pair := each.([]interface{})
		field := into.FieldByName(pair[0].(string))
		if !field.IsValid() {
			return cannot
		}
		if err := set(field, pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// decodeAny sets a variable of an interface type, for which only an error or plain data can be made.
func decodeAny(value interface{}, into reflect.Value) error {
	if into.Type() == errorType {
		parts, ok := value.([]interface{})
		if ok && len(parts) == 3 && parts[0] == "error" {
			into.Set(reflect.ValueOf(errors.New(fmt.Sprint(parts[2]))))
			return nil
		}
	}
	if value == nil {
		return nil
	}
	if into.NumMethod() > 0 {
		return fmt.Errorf("no example can give a %s", into.Type())
	}
	made, err := natural(value)
	if err == nil && made != nil {
		into.Set(reflect.ValueOf(made))
	}
	return err
}

// natural returns a value for an interface{}: what a literal without a type would be.
func natural(value interface{}) (interface{}, error) {
	if number, ok := value.(json.Number); ok {
		if whole, err := strconv.Atoi(number.String()); err == nil {
			return whole, nil
		}
		return number.Float64()
	}
	if parts, ok := tagged(value, "list"); ok {
		made := make([]interface{}, len(parts))
		for at, part := range parts {
			inner, err := natural(part)
			if err != nil {
				return nil, err
			}
			made[at] = inner
		}
		return made, nil
	}
	if pairs, ok := tagged(value, "map"); ok {
		made := map[string]interface{}{}
		for _, each := range pairs {
			pair := each.([]interface{})
			name, named := pair[0].(string)
			inner, err := natural(pair[1])
			if err != nil || !named {
				return nil, errors.New("an interface{} cannot be made of it")
			}
			made[name] = inner
		}
		return made, nil
	}
	if _, ok := value.([]interface{}); ok {
		return nil, errors.New("an interface{} cannot be made of it")
	}
	return value, nil
}
