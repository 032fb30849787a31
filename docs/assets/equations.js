// Sets what arithmatex has marked: \(...\) in spans, \[...\] in divs.
document.addEventListener("DOMContentLoaded", () => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    const marked = element.textContent.trim()
    katex.render(marked.slice(2, -2), element, { displayMode: marked.startsWith("\\[") })
  }
})
