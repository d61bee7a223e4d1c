package main

import (
	"log"
	"net/http"
	"os"
	"time"
)

func getSetting(name, byDefault string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return byDefault
}

func newServer(address string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
	}
}

func main() {
	store, err := openStore(getSetting("DATABASE", "project_name.json"))
	if err != nil {
		log.Fatal(err)
	}
	address := "127.0.0.1:" + getSetting("PORT", "8000")
	log.Print("http://", address)
	log.Fatal(newServer(address, newApp(store)).ListenAndServe())
}
