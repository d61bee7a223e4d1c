import { load, save } from "./store";

export = {
  measure: {
    args: ["NAME", "HEIGHT"],
    help: "Record the height of a plant.",
    run(name: string, height: string) {
      const heights: Record<string, number> = load({});
      heights[name] = Number(height);
      save(heights);
      return `${name}: ${height} cm`;
    },
  },
};
