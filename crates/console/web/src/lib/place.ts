// An action that sets style properties through the CSSOM, which the content security policy allows; style attributes are refused.
export function place(node: HTMLElement | SVGElement, styles: Record<string, string>) {
  const apply = (next: Record<string, string>) => {
    for (const [name, value] of Object.entries(next)) node.style.setProperty(name, value);
  };
  apply(styles);
  return { update: apply };
}
