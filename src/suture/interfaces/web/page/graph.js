// The graph of the recipe, with the active node highlighted.

import { get } from "./api.js";
import { el, fill, projectName, svg, table } from "./dom.js";
import { hasRun, nothingYet, drawIfChanged } from "./panel.js";

// Node -> its column and row in the drawing.
const POSITION = {
  write_test: [0, 0], prepare: [1, 0], accept_test: [0, 1], equip: [1, 1], investigate: [2, 1], review: [0, 2], decide: [1, 2], finish: [2, 2],
  mutate: [0, 3], propose: [1, 3], try_repairs: [0, 4], check: [1, 4], reflect: [2, 3], confirm_examples: [2, 4],
};
// The distance from one node to the next, and a node's size, in pixels.
const [ACROSS, DOWN, WIDTH, HEIGHT] = [146, 82, 124, 44];
// Node -> its name for people, if its own name says too little.
const NAMES = { prepare: "run your tests", equip: "plan", mutate: "small edits", try_repairs: "test edits", propose: "ask the model", check: "run the tests", review: "ask you", accept_test: "ask about test", finish: "hand over", gate: "your program", confirm_examples: "ask about results" };
const PURPOSE = {
  prepare: "runs the tests on the unchanged code", equip: "plans, writes tests, recalls memories", decide: "picks the next moves", investigate: "finds out why tests are flaky", mutate: "tries small edits without a model",
  try_repairs: "judges what the search found", propose: "asks the model for code", check: "runs the tests", reflect: "asks the other roles",
  review: "asks a person", finish: "certifies the result", write_test: "writes a test for the reported bug", accept_test: "asks a person about that test", gate: "runs your program and judges what it changed", confirm_examples: "asks a person whether results of new code are right",
};

export async function graphPanel(body, state) {
  const draw = drawIfChanged((graph) => {
    if (!graph) return nothingYet(body, state, "The run has not started");
    const rows = graph.nodes.map((node) => [nameOf(node.name), PURPOSE[node.name] ?? "", node.visits, node.name === graph.active ? "active" : node.possible ? "" : "not in this recipe"]);
    return fill(body, el("p", {}, `Every step that the recipe ${projectName(graph.recipe)} can take. Bold arrows show the path of this run; the numbers say how often it took a step. `, graph.active ? ["It is now at: ", el("strong", {}, nameOf(graph.active)), "."] : null),
      picture(graph), el("details", {}, el("summary", {}, "The graph as a table"), table("Nodes", ["node", "purpose", "visits", "state"], rows)));
  });
  return async () => draw(hasRun(state) ? await get(`/v1/runs/${state.run}/graph`, state.signal) : null);
}

const nameOf = (name) => NAMES[name] ?? name.replace("_", " ");

function picture(graph) {
  let beyond = 5;
  const at = Object.fromEntries(graph.nodes.map((node) => [node.name, POSITION[node.name] ?? [1, beyond++]]));
  const width = 3 * ACROSS;
  const height = beyond * DOWN;
  const centre = (name) => [at[name][0] * ACROSS + ACROSS / 2, at[name][1] * DOWN + DOWN / 2];
  const label = graph.nodes.filter((node) => node.visits).map((node) => `${nameOf(node.name)} ${node.visits} times`).join(", ");
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph" },
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Active: ${graph.active ? nameOf(graph.active) : "none"}. Visited: ${label || "none"}.`, class: "graph" },
      svg("defs", {}, ["tip", "taken"].map((id) => svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, svg("path", { d: "M0 0L8 4L0 8z", class: id })))),
      graph.edges.toSorted((one, other) => one.visits - other.visits).map(({ from, to, visits }) => arrow(centre(from), centre(to), visits > 0)),
      graph.nodes.map((node) => {
        const [x, y] = centre(node.name);
        const kind = node.name === graph.active ? "active" : node.visits ? "seen" : node.possible ? "" : "never";
        return svg("g", { class: `node ${kind}` }, svg("title", {}, `${nameOf(node.name)}: ${PURPOSE[node.name] ?? "a step of this recipe"}`), svg("rect", { x: x - WIDTH / 2, y: y - HEIGHT / 2, width: WIDTH, height: HEIGHT, rx: 6 }),
          svg("text", { x, y: node.visits ? y - 2 : y + 4, "text-anchor": "middle" }, nameOf(node.name)),
          node.visits ? svg("text", { x, y: y + 14, "text-anchor": "middle", class: "small" }, `${node.visits}x`) : null);
      })));
}

// An arrow from one box's border to another's, curved so that opposite arrows do not overlap.
function arrow([x1, y1], [x2, y2], isTaken) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const cut = (d) => Math.min(Math.abs(WIDTH / 2 / (d[0] || 1e-9)), Math.abs(HEIGHT / 2 / (d[1] || 1e-9)));
  const far = Math.hypot(dx, dy) > 1.5 * ACROSS || (dx === 0 && Math.abs(dy) > DOWN) ? 34 : 8;
  const length = Math.hypot(dx, dy) || 1;
  const [bendX, bendY] = [x1 + dx / 2 - (dy / length) * far, y1 + dy / 2 + (dx / length) * far];
  const [from, to] = [cut([bendX - x1, bendY - y1]), cut([bendX - x2, bendY - y2])];
  const start = [x1 + (bendX - x1) * from, y1 + (bendY - y1) * from];
  const end = [x2 + (bendX - x2) * to, y2 + (bendY - y2) * to];
  return svg("path", { class: isTaken ? "edge taken" : "edge", d: `M${start} Q${bendX} ${bendY} ${end}`, "marker-end": isTaken ? "url(#taken)" : "url(#tip)" });
}
