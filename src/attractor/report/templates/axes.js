"use strict";
/* The ranges of figures: as drawn first, as a reader has zoomed, and on the scale of another type. */
const axes = (figures) => {
  /* The range that an axis of a plot has when nobody has zoomed; none is fitted to the data. */
  function wholeRange(plot, name) {
    const { meta, ...first } = figures[plot.dataset.figure].layout;
    return name === "yaxis" && meta ? meta.scales[plot.layout.yaxis.type].range : first[name]?.range;
  }

  function ranges(plot) {
    const found = {};
    for (const name of ["xaxis", "yaxis"]) {
      const range = wholeRange(plot, name);
      if (range) found[`${name}.range`] = [...range];
      else found[`${name}.autorange`] = figures[plot.dataset.figure].layout[name]?.autorange ?? true;
    }
    return found;
  }

  /* The ranges of a plot that a reader has zoomed, by the names that change them. */
  function zoom(plot) {
    const found = {};
    for (const name of ["xaxis", "yaxis"]) {
      const now = plot.layout[name];
      const whole = wholeRange(plot, name);
      if (plot.layout.scene || !now?.range) continue;
      const far = (end, place) => Math.abs(end - whole[place]) > 1e-9;
      if (whole ? now.range.some(far) : now.autorange === false) {
        found[`${name}.range`] = [...now.range];
      }
    }
    return found;
  }

  /* A range on an axis of another type; where that has no such end, the end of the whole. */
  function converted(range, type, whole) {
    if (type === "linear") return range.map((end) => 10 ** end);
    return range.map((end, place) => (end > 0 ? Math.log10(end) : whole[place]));
  }

  /* How far a key moves both ends of the steps, in widths of what is in sight. */
  const moves = {
    "+": [0.25, -0.25], "=": [0.25, -0.25], "-": [-0.5, 0.5],
    ArrowLeft: [-0.25, -0.25], ArrowRight: [0.25, 0.25],
  };

  /* What a key changes in a plot; nothing if it is none of these. */
  function byKey(plot, key) {
    const range = plot.layout.xaxis?.range;
    if (!range || !plot.dataset.figure) return null;
    if (key === "0") return ranges(plot);
    const move = moves[key]?.map((part) => part * (range[1] - range[0]));
    return move ? { "xaxis.range": range.map((end, place) => end + move[place]) } : null;
  }

  return { ranges, zoom, converted, byKey };
};
