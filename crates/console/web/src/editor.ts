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
  offer(schema: SQLNamespace): void;
  focus(): void;
  destroy(): void;
};

export function open(host: HTMLElement, doc: string, run: () => void, changed: (text: string) => void): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const language = new Compartment();
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc,
      extensions: [
        keymap.of([{ key: 'Mod-Enter', run: () => (run(), true) }, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
        overtype, lineNumbers(), history(), bracketMatching(), autocompletion(), EditorView.lineWrapping,
        placeholder('SELECT … (Ctrl+Enter runs it)'), language.of(sql({ dialect: MySQL })), look, syntaxHighlighting(colours),
        EditorView.contentAttributes.of({ 'aria-label': 'Statement' }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    cursor: () => view.state.selection.main.head,
    selection: () => view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } }),
    offer: (schema) => view.dispatch({ effects: language.reconfigure(sql({ dialect: MySQL, schema })) }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
