// Return the orders that have an amount, with tax.
export const processRows = (rows: Record<string, any>[]) => {
  const orders = rows.filter(({ amount }) => typeof amount === "number");
  return orders.map((order) => ({ ...order, withTax: Math.round(order.amount * 120) / 100 }));
};
