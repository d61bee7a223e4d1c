"use strict";

const { createServer } = require("./app");

if (require.main === module) {
  const port = Number(process.env.PORT ?? 8000);
  createServer(process.env.DATABASE ?? "project_name.json").listen(port, "127.0.0.1", () => {
    console.log(`http://127.0.0.1:${port}`);
  });
}
