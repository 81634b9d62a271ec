// Streamlit's modules, which came in this one file as PARTS, under the addresses of their own files:
// what is fetched later finds the same ones. BASE stands for the folder of these addresses.
(async () => {
  const folder = new URL("static/js/", document.baseURI).href;
  const module = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const imports = { [PROBE]: module("") };
  for (const [name, text] of Object.entries(PARTS)) {
    imports[folder + name] = module(text.replaceAll(BASE, folder));
  }
  const map = document.createElement("script");
  map.type = "importmap";
  map.textContent = JSON.stringify({ imports });
  document.head.append(map);
  await import(PROBE).catch(() => {}); // where it is not taken, the files themselves are fetched
  const broken = () => document.documentElement.toggleAttribute("data-evenhand-broken", true);
  import(folder + ENTRY).catch(broken); // for front.js
  for (const path of LATER) {
    const link = Object.assign(document.createElement("link"), { rel: "modulepreload", href: path });
    document.head.append(link);
  }
})();
