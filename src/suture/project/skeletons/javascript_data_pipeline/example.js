// Return the orders that have an amount, with tax.
exports.processRows = (rows) => {
  const orders = rows.filter(({ amount }) => typeof amount === "number");
  return orders.map((order) => ({ ...order, withTax: Math.round(order.amount * 120) / 100 }));
};
