module.exports = {
  plants: {
    fields: { name: String, height: { type: Number, default: 0 } },
    check(plant) {
      if (plant.height < 0) throw new Error("height must not be negative");
    },
  },
};
