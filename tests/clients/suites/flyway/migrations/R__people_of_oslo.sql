CREATE OR REPLACE VIEW people_of_oslo AS SELECT id, name FROM people WHERE city = 'Oslo';
