// Where the reader is, what is unfolded and of which rubric: without it, the page shows all in order.
{
  const HEAD = 150; // pixels from the top: a section whose heading is above has begun
  const nav = document.querySelector("nav");
  const links = [...nav.querySelectorAll("a")];
  const sections = links.map(link => document.getElementById(link.hash.slice(1)));
  const bar = nav.querySelector("ul");

  const mark = () => {
    const passed = sections.filter(each => !each.hidden && each.getBoundingClientRect().top < HEAD);
    const here = sections.indexOf(passed.at(-1) ?? sections[0]);
    links.forEach((link, at) => at === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"));
    const left = links[here].offsetLeft - bar.offsetLeft;
    if (bar.scrollWidth > bar.clientWidth) bar.scrollLeft = left - bar.clientWidth / 3;
  };
  let asked = 0;
  addEventListener("scroll", () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(mark); }, { passive: true });
  document.addEventListener("toggle", mark, true);

  const choices = nav.querySelectorAll("button[data-choice]");
  const choose = rubric => {
    for (const part of document.querySelectorAll("[data-rubric]")) part.hidden = rubric !== "" && part.dataset.rubric !== rubric;
    sections.forEach((section, at) => {
      const parts = [...section.querySelectorAll("[data-rubric]")];
      section.hidden = parts.length > 0 && parts.every(part => part.hidden);
      links[at].parentElement.hidden = section.hidden;
    });
    for (const button of choices) button.setAttribute("aria-pressed", button.dataset.choice === rubric);
    mark();
  };
  for (const button of choices) button.addEventListener("click", () => choose(button.dataset.choice));

  const folds = [...document.querySelectorAll("details")];
  const all = nav.querySelector(".all");
  all.addEventListener("click", () => {
    const open = folds.some(fold => !fold.open);
    for (const fold of folds) fold.open = open;
    all.textContent = open ? {{ written("page.close") | tojson }} : {{ written("page.expand") | tojson }};
  });

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.closest("[hidden]")) choose("");
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);

  nav.querySelector(".choices").hidden = false;
  reveal();
  mark();
}
