// Reads compact values, one a line, with JSON.parse alone, by docs/compact.md, and prints a hash of each one's canonical
// text (Canonical.php).

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

class Shown {
    constructor(kind, facts = {}, entries = []) {
        Object.assign(this, { kind, facts, entries });
    }
}

/** An array of PHP's: its keys and values in order. */
class Entries {
    constructor(entries) {
        this.entries = entries;
    }
}

const FLOATS = { NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity };
const has = (json, key) => Object.hasOwn(json, key);
const without = (json, ...keys) => Object.fromEntries(Object.entries(json).filter(([key]) => !keys.includes(key)));

class Decoder {
    constructor(root) {
        this.root = root;
        this.enclosing = [];
    }

    value(json) {
        if (json === null || typeof json !== 'object') return json;
        if (Array.isArray(json)) return new Entries(json.map((item, at) => [at, this.value(item)]));
        if (has(json, '@cut')) return this.cut(json);
        if (has(json, '@error')) {
            const facts = { class: json['@error'], message: json.message };
            return new Shown('error', facts, [['items', this.value(json.items)]]);
        }
        if (has(json, '@object')) return this.object('object', json['@object'], json);
        if (has(json, '@lazy')) return this.object('lazy', json['@lazy'], json);
        if (has(json, '@objects')) {
            const objects = json.items.map((item) => this.object('object', json['@objects'], item));
            return new Entries(objects.map((object, at) => [at, object]));
        }
        if (has(json, '@iterable')) {
            const items = this.value(json.items ?? []);
            const facts = { class: json['@iterable'], ...without(json, '@iterable', 'items') };
            return new Shown('iterable', facts, items.entries);
        }
        if (has(json, '@map')) return new Entries(this.pairs(json['@map']));
        if (has(json, '@int')) return BigInt(json['@int']);
        if (has(json, '@float')) return FLOATS[json['@float']];
        if (has(json, '@bytes')) return Buffer.from(json['@bytes'], 'base64');
        for (const kind of ['enum', 'date', 'resource']) {
            if (has(json, `@${kind}`)) {
                return new Shown(kind, { shown: json[`@${kind}`], ...without(json, `@${kind}`) });
            }
        }
        if (has(json, '@closure')) return new Shown('closure', { shown: json['@closure'] });
        if (has(json, '@uninitialized')) return new Shown('uninitialized');
        if (has(json, '@ref')) return new Shown('reference', { up: this.up(json['@ref']) });
        return new Entries(Object.entries(json).map(([key, item]) => {
            if (key.startsWith('@') && !key.startsWith('@@')) throw new Error(`There is no tag ${key}.`);
            return [key.startsWith('@') ? key.slice(1) : key, this.value(item)];
        }));
    }

    pairs(pairs) {
        return pairs.map(([key, item]) => [this.value(key), this.value(item)]);
    }

    object(kind, cls, json) {
        this.enclosing.push(json);
        const facts = { class: cls };
        const entries = [];
        for (const [key, item] of Object.entries(json)) {
            if (key === '@map') {
                const named = this.pairs(item).map(([name, value]) => [
                    typeof name === 'string' ? this.name(name) : new Entries([[0, ''], [1, name]]), value,
                ]);
                entries.push(...named);
            } else if (key === '@proxy' || key === '@display') {
                facts[key.slice(1)] = item;
            } else if (key !== `@${kind}`) {
                entries.push([this.name(key), this.value(item)]);
            }
        }
        this.enclosing.pop();
        return new Shown(kind, facts, entries);
    }

    name(key) {
        let [mark, name] = ['', key];
        if (/^@[@#-]/.test(key)) name = key.slice(1);
        else if (/^[#-]/.test(key)) [mark, name] = [key[0], key.slice(1)];
        else if (key.startsWith('@')) throw new Error(`There is no tag ${key}.`);
        return new Entries([[0, mark], [1, name]]);
    }

    cut(json) {
        const facts = { kind: json['@cut'], ...without(json, '@cut', 'items', 'text') };
        this.enclosing.push(json);
        const shown = ['items', 'text'].filter((key) => has(json, key)).map((key) => [key, this.value(json[key])]);
        this.enclosing.pop();
        return new Shown('cut', facts, shown);
    }

    up(pointer) {
        const steps = pointer.split('/').slice(1).map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
        const target = steps.reduce((json, step) => json[step], this.root);
        const place = this.enclosing.toReversed().indexOf(target);
        if (place < 0) throw new Error(`Nothing around is at ${pointer}.`);
        return place;
    }
}

function canonical(value) {
    if (value === null || typeof value === 'boolean') return String(value);
    if (typeof value === 'bigint') return `i${value}`;
    if (typeof value === 'number') return Number.isNaN(value) ? 'nan' : `d${float(value)}`;
    if (typeof value === 'string') return `s${Buffer.from(value).toString('hex')}`;
    if (Buffer.isBuffer(value)) return `s${value.toString('hex')}`;
    if (value instanceof Entries) return `array${pairs(value.entries)}`;
    const facts = Object.entries(value.facts).sort(([a], [b]) => (a < b ? -1 : 1));
    const order = (a, b) => (name(a) < name(b) ? -1 : 1);
    const isDeclared = value.kind === 'object' && value.facts.class !== 'stdClass';
    // The order of declared properties is the encoder's.
    const entries = isDeclared ? value.entries.toSorted(order) : value.entries;
    return value.kind + `array${pairs(facts)}` + pairs(entries);
}

const name = ([key]) => key.entries[0][1] + key.entries[1][1];
const pairs = (entries) => `(${entries.map(([key, item]) => `${canonical(key)}=${canonical(item)}`).join(',')})`;

function float(value) {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return bytes.toString('hex');
}

const out = [];
for await (const line of createInterface({ input: createReadStream(process.argv[2]) })) {
    const json = JSON.parse(line);
    out.push(createHash('md5').update(canonical(new Decoder(json).value(json))).digest('hex'));
}
process.stdout.write(out.join('\n') + '\n');
