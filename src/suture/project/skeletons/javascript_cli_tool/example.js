const { load, save } = require("./store");

module.exports = {
  measure: {
    args: ["NAME", "HEIGHT"],
    help: "Record the height of a plant.",
    run(name, height) {
      const heights = load({});
      heights[name] = Number(height);
      save(heights);
      return `${name}: ${height} cm`;
    },
  },
};
