INSERT INTO people (name, email) VALUES ('Ada', 'ada@example.org');
INSERT INTO people (name, email) VALUES ('Ben', NULL), ('Cleo', 'cleo@example.org');
