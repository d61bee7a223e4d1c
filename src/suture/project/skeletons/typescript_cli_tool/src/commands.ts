export = {};
