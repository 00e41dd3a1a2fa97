// The SQL editor, a chunk of its own that only the SQL page loads. It lives in a shadow root: its adopted style sheets pass the content
// security policy there.
import { autocompletion, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { MySQL, sql, type SQLNamespace } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const look = EditorView.theme({
  '&': { fontSize: '13px', backgroundColor: 'var(--card)', color: 'var(--ink)', minHeight: '9rem', maxHeight: '50vh' },
  '.cm-scroller': { fontFamily: "ui-monospace, 'DejaVu Sans Mono', monospace", overflow: 'auto', minHeight: '9rem' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '&.cm-focused': { outline: '2px solid var(--accent)' },
  '.cm-gutters': { backgroundColor: 'var(--back)', color: 'var(--soft)', border: 'none' },
  '.cm-placeholder': { color: 'var(--soft)' },
  '.cm-tooltip': { backgroundColor: 'var(--card)', color: 'var(--ink)', border: '1px solid var(--line)' },
});
const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--accent)', fontWeight: '600' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
]);

// Text typed over a selection is inserted here: a browser keeps the colour of the replaced text by a style attribute, which the policy
// refuses.
const overtype = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== 'insertText' || event.isComposing || event.data === null || view.state.selection.main.empty) return false;
    view.dispatch({ ...view.state.replaceSelection(event.data), userEvent: 'input.type', scrollIntoView: true });
    return true;
  },
});

export type Editor = {
  text(): string;
  cursor(): number;
  selection(): string;
  replace(text: string): void;
  /** Shows the text of a tab; its history and selection are those that it had, if the text is the same. */
  show(tab: string, text: string): void;
  drop(tab: string): void;
  offer(schema: SQLNamespace): void;
  focus(): void;
  destroy(): void;
};

export function open(host: HTMLElement, run: () => void, changed: (text: string) => void, selected: (any: boolean) => void): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const language = new Compartment();
  let known = sql({ dialect: MySQL });
  const extensions = [
    keymap.of([{ key: 'Mod-Enter', run: () => (run(), true) }, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
    overtype, lineNumbers(), history(), bracketMatching(), autocompletion(), EditorView.lineWrapping,
    placeholder('SELECT … (Ctrl+Enter runs it)'), look, syntaxHighlighting(colours),
    EditorView.contentAttributes.of({ 'aria-label': 'Statement' }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed(update.state.doc.toString());
      if (update.selectionSet || update.docChanged) selected(!update.state.selection.main.empty);
    }),
  ];
  const make = (doc: string) => EditorState.create({ doc, extensions: [...extensions, language.of(known)] });
  const states = new Map<string, EditorState>();
  let current = '';
  const view = new EditorView({ root, parent: root, state: make('') });
  return {
    text: () => view.state.doc.toString(),
    cursor: () => view.state.selection.main.head,
    selection: () => view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } }),
    show: (tab, text) => {
      if (current) states.set(current, view.state);
      const state = states.get(tab);
      current = tab;
      view.setState(state && state.doc.toString() === text ? state : make(text));
      view.dispatch({ effects: language.reconfigure(known) });
      selected(!view.state.selection.main.empty);
    },
    drop: (tab) => {
      states.delete(tab);
      if (current === tab) current = '';
    },
    offer: (schema) => {
      known = sql({ dialect: MySQL, schema });
      view.dispatch({ effects: language.reconfigure(known) });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
